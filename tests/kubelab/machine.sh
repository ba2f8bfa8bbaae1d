#!/bin/sh
# machine.sh : becomes PID 1 of a new machine, in three steps, each of which is this script started anew.
# From the environment: STEP, NAME, PROGRAMS and CNI (of the cache), DIR (the machine's directory in the lab's state, from here
# on also /run/kubelab), TOP and INIT (the machine's cgroup in each hierarchy, and the leaf in it where its processes live).
# When the machine stands, it prints the pid that PID 1 has on the host, and nothing else.
set -eu
join() { for cgroup in $1; do echo $$ > "$cgroup/cgroup.procs"; done; }

case ${STEP:-1} in
1) join "$TOP"                               # is to be the root of the cgroup namespace...
   STEP=2 exec unshare --cgroup sh "$0" ;;
2) join "$INIT"                              # ...but with cgroup v2 must hold no process itself
   STEP=3 exec unshare --net --mount --uts --ipc --pid --fork --kill-child --propagation private sh "$0" ;;
esac

read -r pid rest < /proc/self/stat           # this /proc still counts as the host does
cd "$DIR"
hostname "$NAME"
mount --make-rshared /                       # pods' volumes must propagate into the kubelet's view and back
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs -o mode=755 cgroups /sys/fs/cgroup
while read -r type name options; do
  mkdir -p "/sys/fs/cgroup/$name"
  mount -t "$type" ${options:+-o "$options"} cgroup "/sys/fs/cgroup/$name"
done < cgroup-mounts

# The kubelet insists on six kernel settings that belong to the whole host: show it files that hold them instead.
mkdir -p sysctl
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
               kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
  file=sysctl/$(echo "${setting%=*}" | tr / _)
  echo "${setting#*=}" > "$file"
  mount --bind "$file" "/proc/sys/${setting%=*}"
done

# Own /etc (over the host's), /var, /opt, /run, /tmp; the rest of the host's files can be read only.
# -c (no canonicalizing) keeps `.` and `var` relative: their absolute path may just have been hidden.
mkdir -p programs etc.work var/lib/kubelet var/lib/containerd var/log/pods var/tmp opt/cni/bin
mount --bind "$PROGRAMS" programs
mount --bind "$CNI" opt/cni/bin
mount -t overlay -o lowerdir=/etc,upperdir=etc.upper,workdir=etc.work etc /etc
mount -t tmpfs -o mode=755 run /run
mkdir -p /run/kubelab /run/lock
mount -c --rbind . /run/kubelab
mount -t tmpfs tmp /tmp
mount -c --rbind opt /opt
mount -c --bind var /var
mount -o remount,bind,ro /
cd /

echo "$pid"
exec /run/kubelab/bin/pause > /dev/null 2>&1
