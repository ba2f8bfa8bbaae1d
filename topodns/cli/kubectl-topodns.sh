#!/bin/sh
# `kubectl topodns` for machines without Python, as krew installs it: runs the command in a server's Pod.
# topodns.cli.kubectl is the plugin with all options; it needs Python, and forwards a port in place of `kubectl exec`.
set -eu

usage() {
    cat <<'END'
usage: kubectl topodns COMMAND [ARGUMENT...]

  explain (--client IP | --pod POD | --node NAME) NAME [TYPE]   say why a client gets its answer
  who ADDRESS|POD                                               say on which node a client is
  top [--by WHAT] [--rows NUMBER]                               list the clients or names with the most queries
  audit [--what-if CHANGE]                                      list the clients that keys leave without an endpoint

POD is [NAMESPACE/]NAME. `kubectl topodns COMMAND -h` asks a server for all arguments of a command.

  -n, --namespace NAME    where topodns runs (kube-system)
  -l, --selector LABELS   the labels of its Pods (app.kubernetes.io/name=topodns)
  -c, --container NAME    the container of topodns in them (topodns)
  --server-pod NAME       the Pod to ask
  --context, --kubeconfig, --cluster, --user, --as VALUE   as of kubectl

Exit status: that of the command in the Pod; 2 where none could be asked.
END
}

fail() {
    echo "$1" >&2
    exit 2
}

k() {
    kubectl ${context:+"--context=$context"} ${kubeconfig:+"--kubeconfig=$kubeconfig"} \
        ${cluster:+"--cluster=$cluster"} ${user:+"--user=$user"} ${as:+"--as=$as"} "$@"
}

# The first address of the Pod [NAMESPACE/]NAME, by default of the namespace of kubectl's context.
address_of() {
    place=${1%/*}
    [ "$place" != "$1" ] || place=
    found=$(k get pod "${1##*/}" ${place:+"--namespace=$place"} '--output=jsonpath={.status.podIP}') || exit 2
    [ -n "$found" ] || fail "Pod $1 has no address yet"
    echo "$found"
}

# The names of the ready Pods of topodns, a line each.
ready_pods() {
    ready='{range .items[*]}{.status.conditions[?(@.type=="Ready")].status} {.metadata.name}{"\n"}{end}'
    k get pods "--namespace=$namespace" "--selector=$selector" "--output=jsonpath=$ready" | sed -n 's/^True //p'
}

# Run these words of topodns in a Pod.
run_in() {
    pod=$1
    shift
    k exec "--namespace=$namespace" "--container=$container" "$pod" -- /topodns "$@"
}

# The status of a command in this Pod; 2 where it could not be run. (`kubectl exec` has 1 for that, `audit` for a finding.)
ask() {
    echo "asking Pod $namespace/$1" >&2
    run_in "$@" && return
    status=$?
    run_in "$1" -version >/dev/null 2>&1 || status=2
    return "$status"
}

namespace=kube-system
selector=app.kubernetes.io/name=topodns
container=topodns
server_pod= context= kubeconfig= cluster= user= as=

command=${1:-}
case $command in
    explain | who | top | audit) shift ;;
    -h | --help | help)
        usage
        exit 0
        ;;
    *)
        usage >&2
        exit 2
        ;;
esac

# The words for topodns stay in "$@", in their order: each word is taken from the front, and these are put to the end.
words=$#
while [ "$words" -gt 0 ]; do
    word=$1
    shift
    words=$((words - 1))
    case $word in
        --*=*)
            value=${word#*=}
            name=${word%%=*}
            ;;
        -n | --namespace | -l | --selector | -c | --container | --server-pod | --pod | \
            --context | --kubeconfig | --cluster | --user | --as)
            [ "$words" -gt 0 ] || fail "$word: expected a value"
            value=$1
            name=$word
            shift
            words=$((words - 1))
            ;;
        *)
            case $command/$word in
                who/-* | who/*:*) ;;
                who/*[!0-9.]*) word=$(address_of "$word") ;;
            esac
            set -- "$@" "$word"
            continue
            ;;
    esac
    case $name in
        -n | --namespace) namespace=$value ;;
        -l | --selector) selector=$value ;;
        -c | --container) container=$value ;;
        --server-pod) server_pod=$value ;;
        --context) context=$value ;;
        --kubeconfig) kubeconfig=$value ;;
        --cluster) cluster=$value ;;
        --user) user=$value ;;
        --as) as=$value ;;
        --pod)
            value=$(address_of "$value")
            set -- "$@" --client "$value"
            ;;
        *) set -- "$@" "$word" ;;
    esac
done

pods=${server_pod:-$(ready_pods)}
[ -n "$pods" ] || fail "found no ready Pod with the label $selector in namespace $namespace"
[ "$command" = top ] || pods=${pods%%"
"*}
worst=0
for each in $pods; do
    ask "$each" "$command" "$@" || worst=$?
done
exit "$worst"
