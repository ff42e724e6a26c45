#!/bin/sh
# Runs a command in a Debian of its own, once for each Python version. The project and the packages
# that its tests need are installed there. The Debian stays in /var/tmp for the next time. This needs
# root and debootstrap, and qemu for another architecture. Where apt works, the script installs them.
#
#     tests/in-debian.sh SUITE ARCHITECTURE "VERSION..." COMMAND [ARGUMENT...]
#
# With QUERYPROF_TEST_USER=1 the command runs as a user without privileges.
set -eu
suite=$1
architecture=$2
versions=$3
shift 3
root=${QUERYPROF_DEBIANS:-/var/tmp/queryprof}-$suite-$architecture
here=$(cd "$(dirname "$0")/.." && pwd)
binfmt=/proc/sys/fs/binfmt_misc
case $architecture in
    amd64) machine=x86_64 ;;
    arm64) machine=aarch64 ;;
    *) echo "$architecture: only amd64 and arm64 are known here" >&2; exit 2 ;;
esac

if [ "$(id -u)" != 0 ]; then
    echo "this needs root: it makes a Debian in $root, and mounts /proc, /dev/pts and /dev/shm there" >&2
    exit 2
fi
needed=
command -v debootstrap > /dev/null || needed="$needed debootstrap"
foreign=
if [ "$machine" != "$(uname -m)" ]; then
    foreign=--foreign
    command -v "qemu-$machine-static" > /dev/null || needed="$needed qemu-user-static"
fi
if [ -n "$needed" ]; then
    if ! command -v apt-get > /dev/null; then
        echo "install this system's packages of:$needed" >&2
        exit 2
    fi
    apt-get update -qq
    # shellcheck disable=SC2086 # a list of words
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $needed > /dev/null
fi

mounted=
registered=
leave() {
    for place in $mounted; do
        umount "$place" || umount -l "$place"
    done
    if [ -n "$registered" ]; then
        echo -1 > "$registered"
    fi
}
trap leave EXIT
trap 'exit 130' INT TERM HUP
if [ -n "$foreign" ] && [ ! -e "$binfmt/qemu-$machine" ]; then
    if [ ! -e "$binfmt/register" ]; then
        mount -t binfmt_misc binfmt_misc "$binfmt"
    fi
    cat "/usr/lib/binfmt.d/qemu-$machine.conf" > "$binfmt/register"
    registered=$binfmt/qemu-$machine
fi

packages=gcc,libc6-dev,git,make,ca-certificates,procps
for version in $versions; do
    packages=$packages,python$version,python$version-venv,python$version-dev
    packages=$packages,libpython$version-testsuite
done
if [ ! -e "$root/.complete" ]; then
    rm -rf --one-file-system "$root" # what an interrupted run has left
    # shellcheck disable=SC2086 # an option, or none
    debootstrap $foreign --arch="$architecture" --variant=minbase --include=ca-certificates "$suite" "$root"
    if [ -n "$foreign" ]; then
        chroot "$root" /debootstrap/debootstrap --second-stage
    fi
    touch "$root/.complete"
fi

mkdir -p "$root/dev/pts" "$root/dev/shm"
for place in /dev/shm /proc; do
    if ! mountpoint -q "$root$place"; then
        mount --bind "$place" "$root$place"
        mounted="$root$place $mounted"
    fi
done
if ! mountpoint -q "$root/dev/pts"; then # its own, since the other one is for root alone
    mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
    mounted="$root/dev/pts $mounted"
fi
ln -sf pts/ptmx "$root/dev/ptmx"
cp /etc/resolv.conf "$root/etc/resolv.conf"
for certificates in ${PIP_CERT:-}; do
    mkdir -p "$root$(dirname "$certificates")"
    cp "$certificates" "$root$certificates"
done

# A mirror may be behind. Its files are signed all the same.
echo 'Acquire::Check-Valid-Until "false";' > "$root/etc/apt/apt.conf.d/99mirror"
if [ "$(cat "$root/.complete")" != "$packages" ]; then # debootstrap knows no package that another provides
    chroot "$root" apt-get update -qq
    # shellcheck disable=SC2046 # a list of words
    DEBIAN_FRONTEND=noninteractive chroot "$root" apt-get install -y -qq $(echo "$packages" | tr , ' ') > /dev/null
    echo "$packages" > "$root/.complete"
fi

status=0
for version in $versions; do
    rm -rf "$root/work"
    mkdir -p "$root/work"
    (cd "$here" && git ls-files -z | xargs -0 cp --parents -t "$root/work")
    # shellcheck disable=SC2016 # the inner shell's variables
    # What would have to be compiled for a test takes too long where each instruction is emulated.
    chroot "$root" env -u TMPDIR -u VIRTUAL_ENV HOME=/root VERSION="$version" \
        AS_USER="${QUERYPROF_TEST_USER:-}" SERVERS="${foreign:-yes}" ${foreign:+PIP_ONLY_BINARY=:all:} sh -eu -c '
        cd /work
        "python$VERSION" -m venv "/venv-$VERSION"
        pip="/venv-$VERSION/bin/pip install --quiet --disable-pip-version-check --no-compile"
        $pip "$(grep ^setuptools== requirements-dev.txt)" .
        if [ "$SERVERS" = yes ]; then # they are too slow where each instruction is emulated
            .ci/system-packages
        fi
        # What has no package for this Python yet is left out, and its tests are skipped.
        for name in $(grep -v "^#" tests/packages.txt); do
            requirement=$(awk -F == -v name="$name" "\$1 == name" requirements-dev.txt)
            $pip "$requirement" > /tmp/pip.log 2>&1 ||
                echo "Python $VERSION: without $requirement"
        done
        PATH="/venv-$VERSION/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        if [ -z "$AS_USER" ]; then
            exec "$@"
        fi
        id tester > /dev/null 2>&1 || useradd --create-home tester
        chown -R tester /work
        exec setpriv --reuid=tester --regid=tester --clear-groups env HOME=/home/tester "$@"
    ' sh "$@" || status=1
done
exit $status
