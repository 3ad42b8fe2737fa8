;; A tensor of a group that there is not.
;; include guest
(data (i32.const 0x504) "\01")
