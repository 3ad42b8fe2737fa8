;; The head says an earlier major version than 1.
;; include guest
;; include slot
(data (i32.const 0x404) "\00")
