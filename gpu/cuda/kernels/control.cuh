// What an update knows of itself, in memory of the device: the host submits all of it ahead and reads this once, at the end.
#pragma once
#include <stdint.h>

struct Control {
  // Of the configuration and of the update, written by the host.
  double beta1, beta2, maxNorm, targetKL, adaptiveKL, rateMin, rateMax;
  float learningRate;  // of the update's rates, and without adaptiveKL of its steps
  int apart;           // actor and critic share nothing: each has a norm of its own
  int clipApart;       // and is clipped by that

  // State of the learner: the rate that follows the divergence, and optimiser steps made.
  float rate;
  uint64_t steps;

  // How the update stands: what follows is skipped once one of the two is set.
  int stopped;  // targetKL was exceeded
  int fault;    // see Fault
  uint64_t faultPlace;  // of TARGET: the first row by blocks, from their last step back, times 4, and the Column; else all ones

  // Of the step that is due, for adam: factors of the actor's and of the critic's gradient, and of the moments; and the
  // divergence that it was computed with.
  float scale[2], stepRate, correct2;
  double kl;

  // Sums over the update's steps, in the order of ppo.Stats, and what is of the first or the last one.
  double policyLoss, valueLoss, entropy, approxKL, oldApproxKL, clipped, norm, actorNorm, criticNorm;
  double firstClipped, firstRatioError, made;
  float lastRate;
  int pad;
  double explained, returnsMean, returnsM2;
};

// Why an update failed: a gradient or a target that is not finite. A target has the column that it is not finite in.
enum Fault { NO_FAULT, GRADIENT, TARGET };
enum Column { REWARD, DISCOUNT, BOOTSTRAP, VALUE };

// over reports whether work of an update is to be skipped. Acting has no control.
__device__ __forceinline__ bool over(const Control *c) { return c && (c->stopped | c->fault); }
