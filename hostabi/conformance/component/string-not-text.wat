;; A string that is not UTF-8.
;; include guest
;; include slot
(data (i32.const 0x662) "\ff")
