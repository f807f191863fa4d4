#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs exported training recipes on several processes and hosts of this machine, in smoke mode, with the virtual environments
# that scripts/check-recipes.sh has made:
#   loopback  2 and 4 processes (torchrun; jax.distributed) recorded by `meshwright watch`: losses as with one process, 1e-5 in f32
#   kill      one process is killed with -9: the run names it, and resumes to the same losses from the last complete checkpoint
#   bad-input unequal hosts, a wrong number of hosts, no coordinator, clocks that differ, a full disk: each is named in one error,
#             and nothing half-written is left (scripts/recipes/bad_input.py; as root)
#   ssh       `launch --on hosts:FILE` with two sshd on two ports as two hosts, then with one of the connections cut
#   slurm     `launch --on slurm`, where sbatch is installed and a partition is up
#     scripts/multihost.sh [--parts loopback,kill,bad-input,ssh,slurm] [tunix] [trl-fsdp] [torchax]      default: all
#     MESHWRIGHT=PATH, MESHWRIGHT_VENVS=DIR, MESHWRIGHT_KEEP=DIR    as for scripts/check-recipes.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
help_and_exit "$@"
cd "$root"
parts=loopback,kill,bad-input,ssh,slurm
if [ "${1:-}" = --parts ]; then parts=$2; shift 2; fi
kinds=("$@"); [ $# -gt 0 ] || kinds=(tunix trl-fsdp torchax)
meshwright=$(realpath "${MESHWRIGHT:-build/release/app/meshwright}")
venvs=$(realpath "${MESHWRIGHT_VENVS:-${XDG_CACHE_HOME:-$HOME/.cache}/meshwright/recipes}")
export OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1
for kind in "${kinds[@]}"; do
  [ -x "$venvs/$kind/bin/python" ] || { echo "no $venvs/$kind: run scripts/check-recipes.sh $kind first" >&2; exit 2; }
done
work=${MESHWRIGHT_KEEP:-$(mktemp -d)}
mkdir -p "$work"
servers=()
finish() { for pid in "${servers[@]}"; do kill "$pid" 2>/dev/null || true; done; [ -n "${MESHWRIGHT_KEEP:-}" ] || rm -rf "$work"; }
trap finish EXIT
failed=0 steps=12
report() { printf '%-44s %s\n' "$1" "$2"; [[ $2 != BAD* ]] || failed=1; }
settings=(--set train.steps=$steps --set train.batch=8 --set train.dtype=f32 --set train.eval_every=3 --set train.checkpoint_every=2
  --set data.max_len=32 --set train.answers=0 --set train.sample_every=0)

# Of Tunix and TorchAX; trl-fsdp has one axis.
for_mesh() { [ "$1" = trl-fsdp ] || printf '%s\n' --set mesh.fsdp=2 --set mesh.tp=2; }

export_recipe() {  # KIND FOLDER
  local example=tiny-mesh
  [ "$1" != trl-fsdp ] || example=tiny-lora
  "$meshwright" export "resources/examples/$example.json" --recipe "$1" --out "$2" "${settings[@]}" $(for_mesh "$1") > /dev/null 2> "$work/export.err" ||
    { cat "$work/export.err" >&2; exit 1; }
}

cat > "$work/jax.sh" <<'LOOPBACK'
# jax.sh PYTHON FOLDER N: N JAX processes on this machine
port=$((20000 + RANDOM % 10000)) pids=() status=0
for i in $(seq 0 $(($3 - 1))); do
  JAX_COORDINATOR_ADDRESS=127.0.0.1:$port JAX_NUM_PROCESSES=$3 JAX_PROCESS_ID=$i HOST_NAME=host$i "$1" "$2/train.py" --smoke &
  pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid" || status=$?; done
exit $status
LOOPBACK

run_on() {  # KIND FOLDER N EVENTS: records the run
  local python=$venvs/$1/bin/python command
  if [ "$3" -eq 1 ]; then
    command=("$python" "$2/train.py" --smoke)
  elif [ "$1" = trl-fsdp ]; then
    command=(env "PYTHON=$python" "PROCESSES=$3" "$2/run.sh" --smoke)
  else
    command=(bash "$work/jax.sh" "$python" "$2" "$3")
  fi
  "$meshwright" watch --runs-dir "$work/runs" --name "$1 on $3" --json -- "${command[@]}" > "$4" 2> "$4.err"
}

same_losses() {  # ONE.jsonl OTHER.jsonl: "largest difference 4.8e-07", or BAD
  python3 - "$1" "$2" "$steps" <<'PYTHON'
import json, sys
def curves(path):
    found = {}
    for line in open(path, encoding="utf-8"):
        event = json.loads(line)
        if event.get("event") == "metric" and event["name"] in ("train/loss", "train/grad_norm", "eval/loss"):
            found[event["name"], event["step"]] = event["value"]
    return found
one, other = curves(sys.argv[1]), curves(sys.argv[2])
compared = [k for k in other if k in one]
apart = max((abs(one[k] - other[k]) for k in compared), default=9)
whole = ("train/loss", int(sys.argv[3])) in compared
print(f"{'' if whole and apart <= 1e-5 else 'BAD: '}largest difference {apart:.2g} of {len(compared)} losses and norms")
PYTHON
}
last_error() { grep '"event":"finished"' "$1" | tail -n 1 | sed 's/.*"error":"\(\([^"\\]\|\\.\)*\)".*/\1/'; }

# In the background: kills the process with this rank once it has made a step.
kill_rank() {  # KIND FOLDER RANK EVENTS
  local pid
  until grep -q '"name":"train/loss","step":3' "$4" 2>/dev/null; do sleep 0.05; [ -e "$work/killing" ] || return 0; done
  for pid in $(pgrep -f "$2/train.py"); do
    if tr '\0' '\n' < "/proc/$pid/environ" 2>/dev/null | grep -qx "RANK=$3\|JAX_PROCESS_ID=$3"; then kill -9 "$pid"; return 0; fi
  done
}

for kind in "${kinds[@]}"; do
  out=$work/$kind
  export_recipe "$kind" "$out"
  if [[ $parts == *loopback* || $parts == *kill* ]]; then
    rm -rf "$out/out"; run_on "$kind" "$out" 1 "$work/$kind-1.jsonl" || report "$kind, 1 process" "BAD: $(last_error "$work/$kind-1.jsonl")"
  fi
  if [[ $parts == *loopback* ]]; then
    for n in 2 4; do
      rm -rf "$out/out"
      if run_on "$kind" "$out" $n "$work/$kind-$n.jsonl"; then
        report "$kind, $n processes" "$(same_losses "$work/$kind-1.jsonl" "$work/$kind-$n.jsonl")"
      else
        report "$kind, $n processes" "BAD: $(last_error "$work/$kind-$n.jsonl")"
      fi
    done
  fi
  if [[ $parts == *bad-input* ]]; then
    python3 scripts/recipes/bad_input.py "$kind" "$venvs/$kind/bin/python" "$out" "$work/bad-input" || failed=1
  fi
  if [[ $parts == *kill* ]]; then
    for rank in 1 0; do
      rm -rf "$out/out"; events=$work/$kind-killed-$rank.jsonl
      : > "$events"; : > "$work/killing"
      kill_rank "$kind" "$out" $rank "$events" & killer=$!
      if run_on "$kind" "$out" 2 "$events"; then report "$kind, process $rank killed" "BAD: the run ended well"; else
        report "$kind, process $rank killed" "$(last_error "$events" | cut -c1-160)"
        last_error "$events" | grep -q "process $rank on .* was lost" || report "$kind, process $rank killed" "BAD: not named"
      fi
      rm -f "$work/killing"; wait $killer || true
      if run_on "$kind" "$out" 2 "$work/$kind-resumed-$rank.jsonl"; then
        report "$kind, resumed" "$(same_losses "$work/$kind-1.jsonl" "$work/$kind-resumed-$rank.jsonl"), $(grep -o 'resumed from [^"]*' "$work/$kind-resumed-$rank.jsonl" | head -n 1 | sed 's#/.*/##')"
      else
        report "$kind, resumed" "BAD: $(last_error "$work/$kind-resumed-$rank.jsonl")"
      fi
    done
  fi
done

launch_on() {  # KIND TARGET EVENTS OPTIONS...
  local kind=$1 target=$2 events=$3 example=tiny-mesh; shift 3
  [ "$kind" != trl-fsdp ] || example=tiny-lora
  "$meshwright" launch "resources/examples/$example.json" --recipe "$kind" --on "$target" --runs-dir "$work/runs" --json "${settings[@]}" $(for_mesh "$kind") \
    "$@" > "$events" 2> "$events.err"
}

if [[ $parts == *ssh* ]]; then
  mkdir -p "$work/ssh" /run/sshd
  ssh-keygen -q -t ed25519 -N '' -f "$work/ssh/key" <<< y > /dev/null
  : > "$work/hosts"; : > "$work/shared-hosts"; : > "$work/ssh/config"; : > "$work/ssh/known"
  for i in 0 1; do
    port=$((30000 + RANDOM % 10000))
    printf 'Port %s\nListenAddress 127.0.0.1\nHostKey %s\nAuthorizedKeysFile %s\nStrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\n' \
      $port "$work/ssh/key" "$work/ssh/key.pub" > "$work/ssh/sshd-$i"
    echo "[127.0.0.1]:$port $(cat "$work/ssh/key.pub")" >> "$work/ssh/known"
    /usr/sbin/sshd -D -f "$work/ssh/sshd-$i" 2> "$work/ssh/sshd-$i.err" & servers+=($!)
    echo "127.0.0.1:$port $work/on-host-$i" >> "$work/hosts"
    echo "127.0.0.1:$port $work/on-host-0" >> "$work/shared-hosts"
  done
  printf 'Host *\n  IdentityFile %s\n  IdentitiesOnly yes\n  UserKnownHostsFile %s\n  StrictHostKeyChecking yes\n' \
    "$work/ssh/key" "$work/ssh/known" > "$work/ssh/config"
  sleep 1
  for kind in "${kinds[@]}"; do
    n=$([ "$kind" = trl-fsdp ] && echo 2 || echo 1)  # run.sh divides the processes among the hosts
    hosts=$work/$([ "$kind" = tunix ] && echo shared-hosts || echo hosts)  # Tunix writes checkpoints together
    on_hosts="exec python3 on_hosts.py $hosts --ssh-config $work/ssh/config --grace 30 --env PYTHON=$venvs/$kind/bin/python --env OMP_NUM_THREADS=1"
    on_hosts+=" --env PROCESSES=$n -- --smoke"
    rm -rf "$work"/on-host-*
    if launch_on "$kind" "hosts:$hosts" "$work/$kind-ssh.jsonl" --command "$on_hosts"; then
      report "$kind, two hosts over ssh" "$(grep -c '"host"' "$work/$kind-ssh.jsonl") events with a host, $([ ! -e "$work/$kind-1.jsonl" ] || same_losses "$work/$kind-1.jsonl" "$work/$kind-ssh.jsonl")"
    else
      report "$kind, two hosts over ssh" "BAD: $(last_error "$work/$kind-ssh.jsonl") $(tail -n 3 "$work/$kind-ssh.jsonl.err")"
    fi
    rm -rf "$work"/on-host-*
    events=$work/$kind-cut.jsonl; : > "$events"
    (until grep -q '"name":"train/loss","step":2' "$events"; do sleep 0.2; [ -e "$events" ] || exit; done
      port=$(sed -n '2s/.*:\([0-9]*\) .*/\1/p' "$work/hosts")
      kill -9 $(pgrep -f "^ssh .*-p $port .*launch.sh")) & cutter=$!
    if launch_on "$kind" "hosts:$hosts" "$events" --command "$on_hosts"; then report "$kind, connection cut" "BAD: the run ended well"; else
      report "$kind, connection cut" "$(last_error "$events" | cut -c1-160)"
    fi
    kill $cutter 2>/dev/null || true
  done
fi

if [[ $parts == *slurm* ]]; then
  if command -v sbatch > /dev/null && sinfo -h | grep -q .; then
    for kind in "${kinds[@]}"; do
      n=$([ "$kind" = trl-fsdp ] && echo 2 || echo 1)
      if PYTHON=$venvs/$kind/bin/python PROCESSES=$n launch_on "$kind" slurm "$work/$kind-slurm.jsonl" \
        --command "exec ./slurm.sh --ntasks-per-node=$([ "$kind" = trl-fsdp ] && echo 1 || echo 2) -- --smoke"; then
        report "$kind, Slurm" "$(grep -o 'submitted job [0-9]*' "$work/$kind-slurm.jsonl" | head -n 1), $([ ! -e "$work/$kind-1.jsonl" ] || same_losses "$work/$kind-1.jsonl" "$work/$kind-slurm.jsonl")"
      else
        report "$kind, Slurm" "BAD: $(last_error "$work/$kind-slurm.jsonl") $(tail -n 3 "$work/$kind-slurm.jsonl.err")"
      fi
    done
  else
    report "Slurm" "not installed here: not tested"
  fi
fi
exit $failed
