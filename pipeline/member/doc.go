// Package member is the hosts of a run. Service lets other machines join the run of this process and says which are there; Join is the other end,
// on a machine that joins. The rules are core/members', the connections core/cluster's.
//
// Both ends build the whole pipeline, with stand-ins for instances of other hosts: Away has the run's, a part has a joined host's. What an
// instance there emits goes to its stand-in here as blocks of package relay, each once; a block is free there when its copy here is. Hosts
// hear of free blocks several at a time, where there are several. New weights are told, and got part by part; small ones come with free blocks.
//
// Programs on a joined host use the run's channels and requests over lines of package cluster: sharing is the owner's end, using the host's.
package member
