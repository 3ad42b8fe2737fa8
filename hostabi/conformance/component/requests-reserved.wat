;; A component of ABI 1.0 has no requests: the words for them are not looked at.
;; include guest
;; include slot
(data (i32.const 0x440) "\02\00\00\00\10")
