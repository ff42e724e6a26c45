#!/bin/sh
# Tests on the CPythons that Debian's sid has and this system may not have: 3.14 and 3.15, or those
# named. In a folder of its own; needs root, and debootstrap, which it installs where apt can.
set -eu
versions=${*:-3.14 3.15}
root=${QUERYPROF_SID:-/var/tmp/queryprof-sid}
here=$(cd "$(dirname "$0")/.." && pwd)
if [ "$(id -u)" != 0 ]; then
    echo "this needs root: it makes a Debian in $root, and mounts /proc, /dev/pts and /dev/shm there" >&2
    exit 2
fi
if ! command -v debootstrap > /dev/null; then
    if ! command -v apt-get > /dev/null; then
        echo "debootstrap is not here: install it with this system's packages" >&2
        exit 2
    fi
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq debootstrap > /dev/null
fi
if [ ! -e "$root/.complete" ]; then
    packages=gcc,libc6-dev,git,ca-certificates,procps
    for version in $versions; do
        packages=$packages,python$version,python$version-venv,python$version-dev
        packages=$packages,libpython$version-testsuite
    done
    debootstrap --variant=minbase --include="$packages" sid "$root"
    touch "$root/.complete"
fi

mounted=
leave() {
    for place in $mounted; do
        umount "$root/$place" || umount -l "$root/$place"
    done
}
trap leave EXIT
trap 'exit 130' INT TERM HUP
mkdir -p "$root/dev/pts" "$root/dev/shm"
for place in dev/pts dev/shm proc; do
    if ! mountpoint -q "$root/$place"; then
        mount --bind "/$place" "$root/$place"
        mounted="$place $mounted"
    fi
done
ln -sf pts/ptmx "$root/dev/ptmx"
cp /etc/resolv.conf "$root/etc/resolv.conf"
for certificates in ${PIP_CERT:-}; do
    mkdir -p "$root$(dirname "$certificates")"
    cp "$certificates" "$root$certificates"
done

status=0
for version in $versions; do
    rm -rf "$root/work"
    mkdir -p "$root/work"
    (cd "$here" && git ls-files -z | xargs -0 cp --parents -t "$root/work")
    # shellcheck disable=SC2016 # the inner shell's variables
    chroot "$root" env HOME=/root VERSION="$version" sh -eu -c '
        cd /work
        "python$VERSION" -m venv "/venv-$VERSION"
        pip="/venv-$VERSION/bin/pip install --quiet --disable-pip-version-check"
        $pip "$(grep ^setuptools== requirements-dev.txt)" .
        # What has no package for this Python yet is left out, and its tests are skipped.
        for name in $(grep -v "^#" tests/packages.txt); do
            requirement=$(awk -F == -v name="$name" "\$1 == name" requirements-dev.txt)
            $pip "$requirement" > /tmp/pip.log 2>&1 || echo "Python $VERSION: without $requirement"
        done
        "/venv-$VERSION/bin/pytest" -q -n 3 --dist worksteal -m "not compat" \
            -p no:cacheprovider tests
    ' || status=1
done
exit $status
