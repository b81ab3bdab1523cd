/* An optimizer that updates nothing and keeps the reduced gradient as its one state, "gradient", where it can be read.
 */
#ifndef SLC_MODEL_GRADIENT_KEEPER_H
#define SLC_MODEL_GRADIENT_KEEPER_H

#include <sluice/optimizer.h>

extern const sluice_optimizer slc_gradient_keeper;

#endif
