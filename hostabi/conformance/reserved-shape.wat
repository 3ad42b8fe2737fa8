;; A dimension beyond the rank is not 0.
;; include guest
(data (i32.const 0x510) "\03")
