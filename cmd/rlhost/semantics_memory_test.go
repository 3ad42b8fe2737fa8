package main

import "unsafe"

// uintptrOf is the address of a slice's first byte.
func uintptrOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
