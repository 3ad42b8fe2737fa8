;; A string table that begins within the head.
;; include guest
(data (i32.const 0x42c) "\40\00\00\00\40\08\00\00")
