;; A state that is saved while its environment waits for the next episode continues the same where it is loaded: what it waits for is in it.
;; include guest
;; include save
