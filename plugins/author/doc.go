// Package author makes a component.Component from a component written against sdk/component: in the program, as a row of
// plugins/builtin, or in the process of a plugin by sdk/process.
//
//	"reward_shaper": author.Kind(shaper.New),
//
// It turns handles into tokens and back, and takes back the leases and loans that a component still has when it stops. A
// slot call that reads or writes columns and emits allocates nothing.
package author
