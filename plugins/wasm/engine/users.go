package engine

import "sync"

// Users counts the users of something that is freed when it has been closed and its last user has left.
type Users struct {
	lock   sync.Mutex
	n      int
	closed bool
	freed  bool
	Free   func() error // called once; set before the first use
}

// Enter counts a user in, or returns ErrClosed. Each Enter is followed by one Leave.
func (u *Users) Enter() error {
	u.lock.Lock()
	defer u.lock.Unlock()
	if u.closed {
		return ErrClosed
	}
	u.n++
	return nil
}

// Leave counts a user out. The last one calls Free and gets its error.
func (u *Users) Leave() error {
	u.lock.Lock()
	defer u.lock.Unlock()
	u.n--
	return u.freeIfIdle()
}

// Close forbids new users. If there are none it calls Free and returns its error. Closing again does nothing.
func (u *Users) Close() error {
	u.lock.Lock()
	defer u.lock.Unlock()
	u.closed = true
	return u.freeIfIdle()
}

func (u *Users) freeIfIdle() error {
	if !u.closed || u.n > 0 || u.freed {
		return nil
	}
	u.freed = true
	return u.Free()
}
