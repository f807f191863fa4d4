#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copies this folder into the volume of jobset.yaml, applies jobset.yaml, prints what its pods print until the JobSet has ended,
# copies out/ back, and ends with the JobSet's outcome. Ended itself, it deletes the JobSet; out/ stays in the volume (--fetch).
#     ./jobset.sh --claim my-volume --hosts 4 --accelerator google.com/tpu=4 --namespace training
# An option replaces the lines of jobset.yaml with its name after "edit"; without it, the environment variable beside it does:
#     --name JOBSET_NAME                    the JobSet, and the folder of this run in the volume; default: this folder's name
#     --claim JOBSET_CLAIM                  PersistentVolumeClaim that every host can mount
#     --image JOBSET_IMAGE                  with Python and tar; also of the pod that copies files
#     --hosts JOBSET_HOSTS
#     --accelerator JOBSET_ACCELERATOR      RESOURCE=COUNT of one host
#     --node-selector JOBSET_NODE_SELECTOR  LABEL=VALUE,... of the hosts
# --attach follows the JobSet that runs already, --fetch only copies out/ back; all other options are kubectl's.
set -euo pipefail
cd "$(dirname "$0")"
export LC_ALL=C  # for ranges of letters
plain() { tr '\n\t' '  ' <<< "jobset.sh: $1" | tr -d '\000-\037"\\' | sed 's/ *$//'; }
log_error() { printf '{"event": "log", "level": "error", "text": "%s"}\n' "$(plain "$1")"; }
fail() {
  log_error "$1"
  printf '{"event": "finished", "state": "failed", "steps": 0, "error": "%s"}\n' "$(plain "$1")"
  exit 2
}
kube() { kubectl "${options[@]}" "$@" < /dev/null; }

options=() mode=run
declare -A value=([name]=${JOBSET_NAME:-} [claim]=${JOBSET_CLAIM:-} [image]=${JOBSET_IMAGE:-} [hosts]=${JOBSET_HOSTS:-}
  [accelerator]=${JOBSET_ACCELERATOR:-} [node-selector]=${JOBSET_NODE_SELECTOR:-})
label='[a-z]([-a-z0-9]{0,38}[a-z0-9])?' word='[A-Za-z0-9]([A-Za-z0-9_./-]*[A-Za-z0-9])?'
declare -A form=([name]=$label [claim]='[a-z0-9]([-a-z0-9.]*[a-z0-9])?' [image]='[A-Za-z0-9][A-Za-z0-9_.:/@-]*' [hosts]='[1-9][0-9]{0,4}'
  [accelerator]="$word=[1-9][0-9]{0,3}" [node-selector]="$word=$word(,$word=$word)*")
while [ $# -gt 0 ]; do
  case $1 in
    --name | --claim | --image | --hosts | --accelerator | --node-selector)
      [ $# -gt 1 ] || fail "$1 has no value"
      value[${1#--}]=$2; shift 2 ;;
    --attach | --fetch) mode=${1#--}; shift ;;
    *) options+=("$1"); shift ;;
  esac
done

# Writes jobset.applied.yaml: jobset.yaml with the values of the options.
render() {
  cp jobset.yaml jobset.applied.yaml
  # A name of its own for each folder: two runs share neither JobSet nor files.
  if [ -z "${value[name]}" ] && grep -q '^ *name: meshwright # edit: name' jobset.yaml; then
    value[name]=$(basename "$PWD" | tr '[:upper:]' '[:lower:]' | sed -E 's/[^a-z0-9]+/-/g; s/-$//; s/^.*(.{40})$/\1/; s/^[^a-z]+//')
  fi
  local each line
  for each in "${!value[@]}"; do
    [ -n "${value[$each]}" ] || continue
    [[ ${value[$each]} =~ ^${form[$each]}$ ]] || fail "--$each '${value[$each]}' is invalid; it has the form ${form[$each]}"
    grep -q "# edit: $each\b" jobset.yaml || fail "jobset.yaml has no line with '# edit: $each' for --$each"
    case $each in
      accelerator) line="s|^( *)[^ ]+: [^ ]+( *# edit: $each)|\\1${value[$each]%=*}: ${value[$each]##*=}\\2|" ;;
      node-selector) line="s|: .*( # edit: $each)|: {$(sed -E 's/=/: "/g; s/,|$/", /g; s/, $//' <<< "${value[$each]}")}\\1|" ;;
      hosts) line="s|: (\"?)[0-9]+(\"? *# edit: $each\\b)|: \\1${value[$each]}\\2|" ;;
      *) line="s|: \"?[^ \"]+\"?( *# edit: $each\\b)|: \"${value[$each]}\"\\1|" ;;
    esac
    sed -i -E "$line" jobset.applied.yaml
  done
}

command -v kubectl >/dev/null || fail "kubectl is not in the PATH: install it (kubernetes.io/docs/tasks/tools)"
render
if ! known=$(kube api-resources --api-group=jobset.x-k8s.io --output=name 2>&1); then
  fail "kubectl cannot reach the cluster: ${known##*$'\n'}"
fi
grep -q '^jobsets' <<< "$known" || fail "the cluster has no JobSet: install its controller (jobset.sigs.k8s.io)"
spec=".spec.replicatedJobs[0].template.spec.template.spec"
if ! known=$(kube create --dry-run=client --filename jobset.applied.yaml --output \
  "jsonpath={.metadata.name}|{$spec.volumes[0].persistentVolumeClaim.claimName}|{$spec.containers[0].image}" 2> .jobset.err); then
  fail "kubectl does not accept jobset.applied.yaml: $(cat .jobset.err)"
fi
IFS='|' read -r name claim image <<< "$known"
[ -n "$claim" ] || fail "the first volume of jobset.yaml is not a persistentVolumeClaim: use kubectl apply --filename jobset.yaml"
if ! known=$(kube get persistentvolumeclaim "$claim" --output=name 2>&1); then
  fail "there is no PersistentVolumeClaim $claim: create one that every host can mount, or name another with --claim ($known)"
fi

helper= running= readers=()
# The pod that copies files and the JobSet do not outlive this program.
clean_up() {
  trap '' TERM INT
  [ ${#readers[@]} -eq 0 ] || kill "${readers[@]}" 2>/dev/null || true
  [ -z "$running" ] || kube delete jobset "$name" --ignore-not-found --wait=false >&2 || log_error "the JobSet $name could not be deleted"
  [ -z "$helper" ] || kube delete pod "$helper" --ignore-not-found --wait=false >&2 || log_error "the pod $helper could not be deleted"
}
trap clean_up EXIT
trap 'exit 143' TERM INT
# Runs a command that a signal need not wait for.
attended() { "$@" & wait $!; }

start_helper() {
  helper=$name-files
  cat > jobset.files.yaml <<EOF
apiVersion: v1
kind: Pod
metadata:
  name: $helper
spec:
  activeDeadlineSeconds: 21600
  terminationGracePeriodSeconds: 0
  restartPolicy: Never
  containers:
    - name: files
      image: $image
      command: ["sleep", "21600"]
      volumeMounts:
        - name: recipe
          mountPath: /recipe
          subPath: $name
  volumes:
    - name: recipe
      persistentVolumeClaim:
        claimName: $claim
EOF
  attended kube delete pod "$helper" --ignore-not-found >&2 || true  # of an earlier attempt
  attended kube apply --filename jobset.files.yaml >&2 || return 1
  attended kube wait --for=condition=Ready "pod/$helper" --timeout="${JOBSET_PATIENCE:-600s}" >&2
}
# Prints why pods wait, as far as their conditions and containers say.
why_waiting() {
  local of=".items[*].status"
  kube get pods "$@" --output "jsonpath={$of.conditions[?(@.status==\"False\")].message} {$of.containerStatuses[*].state.waiting.message}" 2>&1 || true
}
why_helper_waits() { why_waiting --field-selector "metadata.name=$helper"; }
# Waits for the end of the pod, because some volumes can be mounted on one node at a time.
stop_helper() { if attended kube delete pod "$helper" >&2; then helper=; fi; }

send_folder() {
  tar --create --anchored --exclude=./out --exclude=./venv --exclude='./.*' --exclude=./jobset.files.yaml . |
    kubectl "${options[@]}" exec --stdin "$helper" -- tar -xof - -C /recipe >&2
}
upload() {
  start_helper || fail "the pod $helper, which mounts the claim $claim, did not start: $(why_helper_waits)"
  attended send_folder || fail "this folder could not be copied into the claim $claim through the pod $helper"
  stop_helper
}
# Fails without exit: the run has ended before.
fetch() {
  if ! start_helper; then
    log_error "out/ stays in the claim $claim, because the pod $helper did not start ($(why_helper_waits)): ./jobset.sh --fetch"
    return 1
  fi
  if ! attended kube exec "$helper" -- test -d /recipe/out; then
    log_error "nothing to copy: there is no out/ in the folder $name of the claim $claim"
    return 1
  fi
  if ! attended kube cp --retries=10 "$helper:/recipe/out" out >&2; then
    log_error "out/ could not be copied from the claim $claim, where it stays: ./jobset.sh --fetch"
    return 1
  fi
  stop_helper
}

# "NAME STATE" with an empty state before the end; nothing if there is no such JobSet.
state_of() { kube get jobset "$name" --ignore-not-found --output 'jsonpath={.metadata.name} {.status.terminalState}'; }
# Prints each line of a pod once, although connections end.
follow() {
  local lines=0 line= phase=
  while :; do
    phase=$(kube get pod "$1" --ignore-not-found --output 'jsonpath={.status.phase}') || phase=Unknown
    while IFS= read -r line; do
      printf '%s\n' "$line"
      lines=$((lines + 1))
    done < <(kube logs --follow "$1" | tail -n +$((lines + 1)))
    case $phase in Succeeded | Failed | "") [ -z "$line" ] || printf '%s\n' "$line"; return ;; esac
    sleep 1
  done
}

if [ "$mode" = fetch ]; then fetch; exit; fi
known=$(state_of) || fail "kubectl cannot say whether the JobSet $name exists"
if [ "$mode" = attach ]; then
  [ -n "$known" ] || fail "there is no JobSet $name to attach to; --name names another"
else
  [ "$known" != "$name " ] || fail "the JobSet $name runs already: --attach follows it, kubectl delete jobset $name ends it"
  upload
  [ -z "$known" ] || attended kube delete jobset "$name" --cascade=foreground >&2  # an earlier run, whose pods were kept for their logs
fi
running=1
[ "$mode" = attach ] || attended kube apply --filename jobset.applied.yaml >&2 || fail "the JobSet $name could not be applied"
of_name=jobset.sigs.k8s.io/jobset-name=$name followed=" " state= begun=$SECONDS
while [ -z "$state" ]; do
  known=$(state_of) || known="$name "  # asked again
  [ -n "$known" ] || { running=; fail "the JobSet $name was deleted by another client of the cluster"; }
  state=${known#"$name "}
  for each in $(kube get pods --selector "$of_name" \
    --output 'jsonpath={range .items[?(@.status.phase!="Pending")]}{.metadata.name}{" "}{end}'); do
    [[ $followed == *" $each "* ]] && continue
    followed+="$each "
    follow "$each" & readers+=($!)
  done
  if [ "$followed" = " " ] && [ -n "$begun" ] && [ $((SECONDS - begun)) -ge 60 ]; then
    echo "jobset.sh: no pod of $name has started: $(why_waiting --selector "$of_name")" >&2
    begun=
  fi
  [ -n "$state" ] || attended sleep 1
done
running=
for reader in "${readers[@]}"; do wait "$reader" || true; done
readers=()
echo "jobset.sh: $name ended: $state" >&2
fetch || exit 1
[ "$state" = Completed ]
