// Package touch holds how many doors it takes to add to the program: a test adds one of each.
package touch
