import type { Tenants } from '../applications/tenants.ts'

/**
 * Does work that ends keys when its turn comes among the changes of applications and keys. The keys were killed before
 * it, because many changes can wait for their turn, and `revive` undoes that: where the work fails the keys live, and
 * where it does not, their records say that they are dead.
 */
export async function runKilled<T>(
  { system }: Tenants,
  revive: () => void,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await system.definitions.run(work)
  } finally {
    revive()
  }
}
