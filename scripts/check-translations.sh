#!/bin/bash
# Checks that lupdate (Debian: qt6-l10n-tools) finds every text of the window with the class that translates it.
#   scripts/check-translations.sh [FILE.ts]     keeps the texts in FILE.ts, for a translator
set -euo pipefail
cd "$(dirname "$0")/.."
lupdate=$(command -v lupdate || echo /usr/lib/qt6/bin/lupdate)
if [ ! -x "$lupdate" ]; then
  echo "lupdate is missing: apt-get install qt6-l10n-tools" >&2
  exit 2
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
texts=${1:-$folder/texts.ts}
messages=$("$lupdate" -silent -no-obsolete -I . -recursive ui app -ts "$texts" 2>&1)
if [ -n "$messages" ]; then
  printf '%s\n' "$messages" >&2
  exit 1
fi
# Texts in the context of a namespace are looked up in that of a class, and never found.
if grep -q '<name>mw::ui</name>' "$texts"; then
  echo "texts without a class: use QT_TRANSLATE_NOOP with the class, or CLASS::tr()" >&2
  exit 1
fi
echo "$(grep -c '<source>' "$texts") texts"
