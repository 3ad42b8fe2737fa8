;; A head with every figure: the host may show what it does not use, and runs the guest as any other.
;; include guest
(data (i32.const 0x430) "\30")
(data (i32.const 0x434) "\02\00\00\00\03\00\00\00")         ;; two environments at most; episodes of three steps
(data (i32.const 0x440) "\13")                             ;; deterministic, time in the observation, create and reset take long
(data (i32.const 0x450) "\00\00\f0\41" "\00\00\00\00\00\00\80\3f" "\00\00\00\3f") ;; 30 pictures a second; rewards from 0 to 1; solved at 0.5
(data (i32.const 0x470) "\0f\00\00\00\1f\00\00\00")         ;; doc and licence
(data (i32.const 0xc0f) "counts to three\00MIT\00")
