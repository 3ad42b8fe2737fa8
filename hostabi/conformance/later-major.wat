;; The head says a later major version: the host says that it is too old.
;; include guest
(data (i32.const 0x404) "\02")
