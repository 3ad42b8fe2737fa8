// Package componentcheck checks that a component keeps the promises of the component ABI: it starts and handles messages, the same
// messages give the same outputs, a snapshot continues as the original would, leases are released, requests are answered once, and
// nothing is written that is not granted.
//
//	messages, err := componentcheck.Read(file) // of rlhost tap --record; nil makes some up
//	for _, r := range componentcheck.Run(componentcheck.Options{Make: make, Configure: decode, Messages: messages}) {
//		fmt.Println(r.ID, r.Verdict, r.Title, r.Detail)
//	}
//
// It drives core/component's Component and knows no runtime. The identifiers of checks are stable.
package componentcheck
