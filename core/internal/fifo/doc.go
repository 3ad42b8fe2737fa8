// Package fifo has the header of the rings of core/ring and how it is checked, and how their ends wait for each other.
package fifo
