# Completes the words of topodns in bash, and in zsh by its bashcompinit.
_topodns() {
    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" command="" words=""
    [ "$COMP_CWORD" -gt 1 ] && command="${COMP_WORDS[1]}"
    case "$before" in
        -conf|--conf|-pidfile|--pidfile|--kubeconfig|--manifests|-basecorefile|-corefile|-kubednscm)
            COMPREPLY=($(compgen -f -- "$word"))
            return ;;
        --from) words="coredns" ;;
        --by) words="client pod namespace node name nxdomain" ;;
        --fail-on) words="error warning info never" ;;
        --kind) words="nodelocator podlocator" ;;
        -firewall) words="auto nftables iptables none" ;;
        *) case "$command" in
            "") words="check explain who top audit locator completion help version node-cache
                -conf -dns.port -p -pidfile -quiet -plugins -version -h --help" ;;
            check) words="-conf -dns.port -p --from --json -h --help" ;;
            explain) words="--client --node --json -conf --server -h --help" ;;
            who) words="--json -conf --server -h --help" ;;
            top) words="--by --rows --json --server -h --help" ;;
            audit) words="-conf --manifests --kubeconfig --server --context --what-if --fail-on --wide --json -h --help" ;;
            locator) words="--kind --kubeconfig --context --label-keys --coalesce --lease --metrics -h --help" ;;
            completion) words="bash zsh -h --help" ;;
            help) words="check explain who top audit locator completion node-cache" ;;
            node-cache) words="-localip -conf -corefile -basecorefile -kubednscm -upstreamsvc -setupinterface
                -interfacename -setupebtables -initialdelay -setupiptables -firewall -syncinterval
                -skipteardown -health-port -metrics-listen-address -prometheus-listen-address
                -reloadwithsignal -nodename -cache-octets -dns.port -p -pidfile -quiet -plugins -version
                -help" ;;
        esac ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -F _topodns topodns
