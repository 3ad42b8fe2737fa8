;; A reward with a pair, which is of final observations and masks.
;; include guest
(data (i32.const 0x5b8) "\01\00") ;; pair
