# shellcheck shell=bash
# Tests of full disks source this file after command_check.sh, as `. small_disk.sh SIZE "$@"`. It mounts a disk of that
# size as $work/small, and $mounted is yes. A user who may not mount gets a namespace of his own, in which the script
# starts anew; if there are none, $mounted is empty.
# shellcheck disable=SC2034,SC2154 # mounted is used by those who source it; work comes from command_check.sh
mkdir "$work/small"
mounted=
if mount -t tmpfs -o "size=$1" tmpfs "$work/small" 2>/dev/null; then
    mounted=yes
    trap 'umount "$work/small"; rm -rf "$work"' EXIT
elif [ -z "${SLUICE_TEST_IN_NAMESPACE:-}" ] && unshare -rm true 2>/dev/null; then
    rm -rf "$work"
    SLUICE_TEST_IN_NAMESPACE=1 exec unshare -rm bash "$0" "${@:2}"
fi
