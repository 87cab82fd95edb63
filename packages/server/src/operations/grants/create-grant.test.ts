import { limits } from '@tollbase/contract/limits'
import { withService } from '@tollbase/testing/per-engine'
import { createSeller } from '@tollbase/testing/views'
import { describe, expect, test } from 'vitest'
import { define } from '../../services/applications/define.ts'

describe('createGrant', () =>
  withService((service) => {
    test('an application gives as many grants as the limit allows; one that is given again needs no more room', async () => {
      const [app, other] = [await createSeller(service()), await createSeller(service())]
      const tenant = await service().running.service.tenants.load(app.appId)
      const grants = Array.from({ length: limits.grantsPerApplicationMax - 1 }, (_, n) => {
        const grant = {
          id: `g${n}`,
          grantee: 'a',
          source: `s${n}`,
          per_access: '0',
          created_at: '',
        }
        return { kind: 'grant', id: grant.id, body: grant } as const
      })
      await define(tenant, grants)
      const give = (grantee: string) =>
        app.call('POST', '/grants', { grantee, collection: 'sales' })
      const first = await give(other.appId)
      expect(first.status, first.text).toBe(201)
      expect((await give(other.appId)).body).toEqual(first.body)
      const third = await service().createApp()
      expect(await give(third.appId)).toMatchObject({ status: 409, body: { code: 'CONFLICT' } })
    })

    test('a grant is for another application that exists, and for one collection or view', async () => {
      const [app, other] = [await createSeller(service()), await createSeller(service())]
      const give = async (body: object) => {
        const { status, body: said } = await app.call('POST', '/grants', body)
        return [status, said.details?.field ?? said.code]
      }
      const grantee = other.appId
      expect(await give({ grantee: 'nobody', collection: 'sales' })).toEqual([
        404,
        'APPLICATION_NOT_FOUND',
      ])
      expect(await give({ grantee: app.appId, collection: 'sales' })).toEqual([400, '/grantee'])
      expect(await give({ grantee })).toEqual([400, '/collection'])
      expect(await give({ grantee, collection: 'sales', view: 'totals' })).toEqual([400, '/view'])
      expect(await give({ grantee, view: 'totals' })).toEqual([404, 'VIEW_NOT_FOUND'])
      const per_access = String(limits.amountAtomicMax + 1n)
      expect(await give({ grantee, collection: 'sales', per_access })).toEqual([400, '/per_access'])
    })
  }))
