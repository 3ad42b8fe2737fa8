// Package shape holds tests of what the repository's structure promises: which way imports go, where libraries from
// elsewhere come in, how large packages, types and functions may be, and how many files an addition touches.
package shape
