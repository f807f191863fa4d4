// SPDX-License-Identifier: Apache-2.0
// What a training run needs, as plain values. experiment::train_settings() makes it from an Experiment.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "core/data/dataset/batches.h"
#include "core/data/dataset/dataset.h"
#include "core/engine/generate/sampler.h"
#include "core/engine/transformer/network.h"
#include "core/engine/transformer/optimizer.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/mesh/layout/placement.h"

namespace mw::train {

enum class Init { load, random };
enum class Schedule { cosine, linear, constant };

struct ModelSettings {
  std::filesystem::path path, tokenizer;  // HF folder; tokenizer empty: in the folder
  Init init = Init::load;
  model::WeightType weights = model::WeightType::f32;
  engine::Use use = engine::Use::training;
  Bytes capacity;   // of the device arena; 0: the machine's memory
  int threads = 0;  // 0: all cores
  std::uint64_t seed = 1;
  int context = 0;              // tokens it will be given at once; more than its positions are refused
  mesh::Mesh mesh{};            // of virtual devices; no axes, or all of size 1: one device
  mesh::ShardingRules rules{};  // how tensors are split over it
};

struct Rate {  // learning rate over steps
  Schedule schedule = Schedule::cosine;
  double peak = 2e-4, final_ratio = 0;
  long warmup = 0, steps = 1;
};
// For step 1..steps: linear from 0 over warmup (step w of W gives peak*w/W), then the schedule down to peak*final_ratio
// at the last step.
double learning_rate(const Rate& rate, long step);

struct Settings {
  ModelSettings model;
  model::TrainMethod method = model::TrainMethod::lora;
  engine::LoraOptions lora;
  std::filesystem::path adapter;  // PEFT folder to start from, or empty
  data::DatasetOptions data;
  data::Packing packing = data::Packing::none;
  int batch = 8, accumulation = 1;
  Rate rate;
  double epochs = 0;  // passes over the data; above 0, settle_steps() sets rate.steps once the data is known
  engine::AdamWOptions adamw;
  double clip = 1;
  model::Remat remat = model::Remat::none;
  int loss_chunk = 256;
  formats::DType save_dtype = formats::DType::bf16;  // model file of full training
  std::uint64_t seed = 1;
  long eval_every = 50, eval_rows = 64;
  long sample_every = 50, sample_prompts = 3, answers = 0;
  long checkpoint_every = 100, keep_checkpoints = 2;
  engine::SampleOptions sample;
};

data::BatchOptions batch_options(const Settings& settings);
// Where epochs are set: rate.steps becomes what they make of these examples, and epochs 0.
void settle_steps(Settings& settings, std::span<const data::Example> train);
data::BatchOptions eval_options(const Settings& settings);  // of held-out rows: unpacked, in order

}  // namespace mw::train
