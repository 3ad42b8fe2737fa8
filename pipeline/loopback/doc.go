// Package loopback serves pages to one user of this machine alone.
//
//	l, err := loopback.Listen("127.0.0.1:0")
//	s := loopback.New("rlhost dash", handler, log)
//	fmt.Println(s.URL(l))
//	err = s.Serve(ctx, l)
//
// Who asks has to know the token in the address, come from the page itself or from outside of any page, and name this machine; see guard. The
// handler sees paths without the token. Pages load what the same server serves, and nothing else.
package loopback
