;; A reward of another type than its role has.
;; include guest
(data (i32.const 0x586) "\04")
