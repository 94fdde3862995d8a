#!/bin/sh
# Node, where no file may grow beyond half a megabyte: the limit is given in blocks of 512 bytes.
ulimit -f 1024
exec "$TEST_NODE" "$@"
