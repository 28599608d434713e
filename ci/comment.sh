#!/bin/sh
# Puts ipcmark-comparison/comment.md, which compare.sh wrote, under the merge request. It measures nothing.
#
#   comment.sh github   by gh, which GitHub's runners have; GH_TOKEN may write pull requests; IPCMARK_REQUEST is the number
#   comment.sh gitlab   by curl; IPCMARK_TOKEN is a project access token with the scope api, since a job's own token may not comment;
#                       CI_API_V4_URL, CI_PROJECT_ID and CI_MERGE_REQUEST_IID are GitLab's own variables
set -eu

comment=${IPCMARK_OUTPUT:-ipcmark-comparison}/comment.md
fail() {
    printf 'comment.sh: %s\n' "$1" >&2
    exit 2
}
[ -s "$comment" ] || fail "$comment is missing; run compare.sh first"

case ${1:-} in
    github)
        [ -n "${IPCMARK_REQUEST:-}" ] || fail 'IPCMARK_REQUEST is not set; give the number of the pull request'
        gh pr comment "$IPCMARK_REQUEST" --body-file "$comment" --edit-last --create-if-none
        ;;
    gitlab)
        [ -n "${IPCMARK_TOKEN:-}" ] ||
            fail 'IPCMARK_TOKEN is not set; make a project access token with the scope api and keep it in a masked variable'
        [ -n "${CI_MERGE_REQUEST_IID:-}" ] || fail 'CI_MERGE_REQUEST_IID is not set; run this in a pipeline of a merge request'
        # The token goes in by standard input, where no list of processes shows it.
        printf 'header = "PRIVATE-TOKEN: %s"\n' "$IPCMARK_TOKEN" |
            curl --config - --silent --show-error --fail --output /dev/null --data-urlencode "body@$comment" \
                "$CI_API_V4_URL/projects/$CI_PROJECT_ID/merge_requests/$CI_MERGE_REQUEST_IID/notes"
        ;;
    *)
        fail 'say where: comment.sh github, or comment.sh gitlab'
        ;;
esac
