//go:build !unix

package main

func keepFileSizeErrors() {}
