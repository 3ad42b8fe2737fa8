// Package members says which hosts belong to a run: who may join, who is here and who is lost.
//
// Owner is the table of the run's owner, Member the other end, on a host that joins. Both are state machines without clocks or goroutines: the
// caller gives them times and what has arrived, and carries out what they ask. Times are this process's own and monotonic; no time of another
// host is ever compared with them.
//
// A join has two steps. With the secret of the join token a host may only ask: it sends a public key that it has made. The owner's answer, a
// Grant, admits the key, and the host connects with it. The grant becomes a place with the first lease; one that is not taken is forgotten.
//
//	row of the owner   event                                   then
//	none, lost, left   Ask: version and room fit               admitted, with a new incarnation
//	admitted, here     Ask of the same attempt                 the same, with the same grant
//	admitted, here     Ask of a later attempt                  admitted, with a new incarnation
//	admitted, here     Ask of an earlier attempt               ErrOld
//	admitted           Renew of its incarnation                here
//	admitted           not renewed for Options.Join            none
//	here               not renewed for Options.TTL             lost
//	here               Leave of its incarnation                left
//	any                Renew of another incarnation            ErrStranger: the member asks again
//
// A host that is lost or has left keeps its name until another one proposes it.
//
// A lease ends by time in which the owner and the server were both awake, see Awake. The owner that was stopped for longer than a lease finds
// the renewals that waited meanwhile, and loses nobody.
package members
