;; Under disabled an environment that waits for its reset and is stepped all the same has reward 0, no flags and the same observation, whatever its action is.
;; include guest
