// SPDX-License-Identifier: GPL-3.0-or-later
// Draws the content of a chart, as series of Qt Charts and over their picture. GUI thread.
#pragma once
#include "ui/charts/chart_axes.h"
#include "ui/charts/chart_scene.h"

class QPainter;

namespace mw::ui {

// `area`: that of the axes.
SceneItems chart_items(const ChartAxes& axes, const QRectF& area);
void paint_annotations(QPainter& painter, const ChartAxes& axes, const QRectF& area,
                       const std::vector<double>& cut_bars);  // of the items
void paint_cursor(QPainter& painter, const ChartAxes& axes, const QRectF& area);
std::vector<QRectF> level_labels(const ChartAxes& axes, const QRectF& area);  // of the levels
QString level_text(const ChartAxes& axes, const LevelLine& level);
QString tip_at(const ChartAxes& axes, QPointF at);     // of a row or a flag; empty: none
int nearest_group(const ChartAxes& axes, QPointF at);  // of the line at a position in the area; -1: none
inline constexpr double kNearPixels = 9;               // between the mouse and a sample

// Functions for charts of rows, in chart_rows.cpp.
void add_row_axes(const ChartAxes& axes, const QRectF& area, SceneItems& out);
void paint_rows(QPainter& painter, const ChartAxes& axes, const QRectF& area);
void paint_row_cursor(QPainter& painter, const ChartAxes& axes, const QRectF& area);
QString row_tip(const ChartAxes& axes, QPointF at);
QStringList row_summaries(const ChartAxes& axes);

}  // namespace mw::ui
