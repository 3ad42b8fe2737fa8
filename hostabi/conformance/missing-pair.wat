;; A final observation of an observation that there is not.
;; include guest
(data (i32.const 0x738) "\03")
