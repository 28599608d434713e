#!/bin/sh
# Builds a merge request and its base, and measures both interleaved on this one machine. It comments nothing: comment.sh does.
#
# What it is told, by environment variables:
#   IPCMARK_BASE        commit to compare with, such as origin/main (needed)
#   IPCMARK_BUILD       command that builds, run at the root of each tree      [cargo build --release]
#   IPCMARK_BINARY      what it builds, from the root of the tree              [target/release/ipcmark]
#   IPCMARK_ARGUMENTS   further options of `ipcmark compare`, split at blanks  [--time 120s]
#   IPCMARK_FAIL_ABOVE  how much slower is a failure                           [5%]
#   IPCMARK_OUTPUT      directory for comparison.txt and comment.md            [ipcmark-comparison]
#
# Exit status: that of `ipcmark compare`: 3 where a case is slower than is allowed; 4 where one may be and that is undecided
# (IPCMARK_ARGUMENTS with --undecided pass lets that pass); 2 for bad input; 1 where a build or a case failed.
set -eu

fail() {
    printf 'compare.sh: %s\n' "$2" >&2
    exit "$1"
}

[ -n "${IPCMARK_BASE:-}" ] || fail 2 'IPCMARK_BASE is not set; set it to the commit to compare with, such as origin/main'
build=${IPCMARK_BUILD:-cargo build --release}
binary=${IPCMARK_BINARY:-target/release/ipcmark}
above=${IPCMARK_FAIL_ABOVE:-5%}
output=${IPCMARK_OUTPUT:-ipcmark-comparison}

cd "$(git rev-parse --show-toplevel)" || fail 2 'this is no git repository'
base=$(git rev-parse --verify --quiet "$IPCMARK_BASE^{commit}") ||
    fail 2 "git knows no commit $IPCMARK_BASE; fetch it first (actions/checkout: fetch-depth: 0; GitLab: GIT_DEPTH: 0)"
head=$(git rev-parse HEAD)

# The base is built in a tree of its own, which is removed whatever happens.
trees=$(mktemp -d)
trap 'git worktree remove --force "$trees/base" >/dev/null 2>&1 || true; rm -rf "$trees"' EXIT
trap 'exit 130' INT TERM
git worktree add --quiet --detach "$trees/base" "$base"

# A build has its own target directory: one that both share would hand the base's binary to the merge request.
unset CARGO_TARGET_DIR
for tree in "$trees/base" .; do
    (cd "$tree" && sh -c "$build" >&2) || fail 1 "in $tree: '$build' failed"
    [ -x "$tree/$binary" ] || fail 1 "'$build' made no $tree/$binary; set IPCMARK_BINARY"
done

mkdir -p "$output"
status=0
# What is asked for is split at blanks on purpose.
# shellcheck disable=SC2086
"./$binary" compare --against "$trees/base/$binary" --fail-above "$above" ${IPCMARK_ARGUMENTS:---time 120s} \
    >"$output/comparison.txt" || status=$?
cat "$output/comparison.txt"

case $status in
    0) verdict="No case is slower by more than $above." ;;
    3) verdict="**A case is slower by more than $above.**" ;;
    4) verdict="**Undecided: a case may be slower by more than $above. Give it more --time, or a quieter machine.**" ;;
    2) fail 2 'ipcmark refused what it was asked for; see above' ;;
    *) verdict="**Something failed; what was measured is below.**" ;;
esac
{
    # By this line comment.sh finds its own comment again.
    printf '<!-- ipcmark -->\n### ipcmark: %.10s against %.10s\n\n%s\n\n' "$head" "$base" "$verdict"
    printf 'A is the base, B the merge request; both were measured in turn in one run.\n\n'
    printf '```text\n'
    cat "$output/comparison.txt"
    printf '```\n'
} >"$output/comment.md"
exit "$status"
