;; The head says another major version.
;; include guest
(data (i32.const 0x404) "\02")
