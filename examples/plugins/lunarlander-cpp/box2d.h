// All of Box2D, in one translation unit with the file that includes it. Its sources are not in this repository: the build fetches them.
// Sines are from rl_math.h, for the same bits on every machine. Memory, log and clock are defined here: a module has no clock. An assertion
// that fails is a trap, which ends the episode.
#ifndef BOX2D_WHOLE_H
#define BOX2D_WHOLE_H

#include "rl_math.h"

#include <cmath>
#include <cstdlib>

#define sinf rl_sinf
#define cosf rl_cosf

#include <Box2D/Common/b2Settings.h>
#undef b2Assert
#define b2Assert(holds) ((holds) ? (void)0 : __builtin_trap())

#include <Box2D/Box2D.h>

void *b2Alloc(int32 size) { return malloc((size_t)size); }
void b2Free(void *memory) { free(memory); }
void b2Log(const char *, ...) {}
b2Timer::b2Timer() {}
void b2Timer::Reset() {}
float32 b2Timer::GetMilliseconds() const { return 0; }

#include <Box2D/Collision/Shapes/b2ChainShape.cpp>
#include <Box2D/Collision/Shapes/b2CircleShape.cpp>
#include <Box2D/Collision/Shapes/b2EdgeShape.cpp>
#include <Box2D/Collision/Shapes/b2PolygonShape.cpp>
#include <Box2D/Collision/b2BroadPhase.cpp>
#include <Box2D/Collision/b2CollideCircle.cpp>
#include <Box2D/Collision/b2CollideEdge.cpp>
#include <Box2D/Collision/b2CollidePolygon.cpp>
#include <Box2D/Collision/b2Collision.cpp>
#include <Box2D/Collision/b2Distance.cpp>
#include <Box2D/Collision/b2DynamicTree.cpp>
#include <Box2D/Collision/b2TimeOfImpact.cpp>
#include <Box2D/Common/b2BlockAllocator.cpp>
#include <Box2D/Common/b2Draw.cpp>
#include <Box2D/Common/b2Math.cpp>
#include <Box2D/Common/b2StackAllocator.cpp>
#include <Box2D/Dynamics/Contacts/b2ChainAndCircleContact.cpp>
#include <Box2D/Dynamics/Contacts/b2ChainAndPolygonContact.cpp>
#include <Box2D/Dynamics/Contacts/b2CircleContact.cpp>
#include <Box2D/Dynamics/Contacts/b2Contact.cpp>
#include <Box2D/Dynamics/Contacts/b2ContactSolver.cpp>
#include <Box2D/Dynamics/Contacts/b2EdgeAndCircleContact.cpp>
#include <Box2D/Dynamics/Contacts/b2EdgeAndPolygonContact.cpp>
#include <Box2D/Dynamics/Contacts/b2PolygonAndCircleContact.cpp>
#include <Box2D/Dynamics/Contacts/b2PolygonContact.cpp>
#include <Box2D/Dynamics/Joints/b2DistanceJoint.cpp>
#include <Box2D/Dynamics/Joints/b2FrictionJoint.cpp>
#include <Box2D/Dynamics/Joints/b2GearJoint.cpp>
#include <Box2D/Dynamics/Joints/b2Joint.cpp>
#include <Box2D/Dynamics/Joints/b2MotorJoint.cpp>
#include <Box2D/Dynamics/Joints/b2MouseJoint.cpp>
#include <Box2D/Dynamics/Joints/b2PrismaticJoint.cpp>
#include <Box2D/Dynamics/Joints/b2PulleyJoint.cpp>
#include <Box2D/Dynamics/Joints/b2RevoluteJoint.cpp>
#include <Box2D/Dynamics/Joints/b2RopeJoint.cpp>
#include <Box2D/Dynamics/Joints/b2WeldJoint.cpp>
#include <Box2D/Dynamics/Joints/b2WheelJoint.cpp>
#include <Box2D/Dynamics/b2Body.cpp>
#include <Box2D/Dynamics/b2ContactManager.cpp>
#include <Box2D/Dynamics/b2Fixture.cpp>
#include <Box2D/Dynamics/b2Island.cpp>
#include <Box2D/Dynamics/b2World.cpp>
#include <Box2D/Dynamics/b2WorldCallbacks.cpp>

#endif
