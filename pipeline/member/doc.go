// Package member is the hosts of a run. Service lets other machines join the run of this process and says which are there; Join is the other end,
// on a machine that joins. The rules are core/members', the connections core/cluster's.
package member
