;; A string that is not UTF-8.
;; include guest
(data (i32.const 0xc03) "\ff")
