import { createOpenData, readChain } from '@tollbase/testing/chains'
import { withService } from '@tollbase/testing/per-engine'
import { decodeBase64 } from '@tollbase/verify/bytes'
import { verifyConsistency } from '@tollbase/verify/tree'
import { describe, expect, test } from 'vitest'

describe('getConsistencyProof', () =>
  withService((service) => {
    test('any two checkpoints are connected by a proof, over many tiles too', async () => {
      const app = await createOpenData(service())
      const checkpoints = [await readChain(service(), app, '/checkpoint')]
      for (const count of [1, 1, 3, 300, 1000, 7]) {
        await app.store(
          'notes',
          Array.from({ length: count }, () => ({ x: 1 })),
        )
        checkpoints.push(await readChain(service(), app, '/checkpoint'))
      }
      for (const [at, from] of checkpoints.entries()) {
        for (const to of checkpoints.slice(at)) {
          const proof = await readChain(
            service(),
            app,
            `/consistency?from=${from.size}&to=${to.size}`,
          )
          const sizes = {
            from: from.size,
            to: to.size,
            fromRoot: decodeBase64(from.root),
            toRoot: decodeBase64(to.root),
            proof: proof.hashes.map(decodeBase64),
          }
          expect(verifyConsistency(sizes), `${from.size} to ${to.size}`).toBe(true)
        }
      }
      const last = checkpoints.at(-1)
      const reply = await service().request(
        'GET',
        `/api/apps/${app.appId}/chain/consistency?from=1&to=${last.size + 1}`,
      )
      expect(reply.status).toBe(400)
    })
  }))
