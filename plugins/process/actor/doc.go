// Package actor has policies that a native plugin computes: a backend whose actors are processes of the program. Rows go to them by a scratch
// area that both share, and actions come back the same way; what comes back is checked before anything reads it.
package actor
