// Package fit checks whether what was loaded for a graph fits together, and on the machine.
//
//	l := fit.Of(g, plugins, policies)
//	l.Check(8<<30, "the limit", report)
//	needs := l.Forecast()
//
// It is pure: it reads no file, no clock and no process, and says the same of the same graph each time.
package fit
