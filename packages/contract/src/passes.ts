import { Type } from 'typebox'
import { limits } from './limits.ts'
import { Target } from './price-targets.ts'
import { defineContract } from './route.ts'
import { AppParams, Described, extendAppParams, Time } from './schemas.ts'

const hours = Type.Integer({
  minimum: 1,
  maximum: limits.passHoursMax,
  description: 'the hours of the pass, as a rule of the target has them',
})

export const passes = defineContract({
  buyPass: {
    method: 'POST',
    path: '/api/apps/:app/passes',
    area: 'Pricing',
    summary: 'Buy a time pass, with which requests for a target are free for some hours',
    description:
      'A rule of the model time_pass names the target, the hours and the amount. The pass is for the account that pays: a wallet, or the one whose key pays. One that is bought while another is valid begins at the end of that.',
    access: 'public',
    shows: 'definitions',
    paid: true,
    params: AppParams,
    body: Type.Object(
      { target: Target, hours },
      {
        additionalProperties: false,
        examples: [{ target: { collection: 'stations' }, hours: 24 }],
      },
    ),
    reply: Type.Object({
      pass_id: Type.String({ description: 'the id of the payment, which names the pass' }),
      target: Target,
      hours,
    }),
    errors: ['APPLICATION_NOT_FOUND', 'PASS_NOT_FOUND'],
  },
  getPass: {
    method: 'GET',
    path: '/api/apps/:app/passes/:pass_id',
    area: 'Pricing',
    summary: 'The times of a pass, for who has its id',
    access: 'public',
    shows: 'named',
    params: extendAppParams({
      pass_id: Type.String({ maxLength: 64, description: 'the `pass_id` of the purchase' }),
    }),
    reply: Type.Object({
      pass_id: Type.String(),
      item: Type.Object(
        { kind: Type.String(), name: Type.String() },
        { description: 'the thing that it is for, such as a collection' },
      ),
      buyer: Type.String({ description: 'the wallet, or the account, that may use it' }),
      valid_from: Described(Time, 'from when requests are free'),
      valid_until: Described(Time, 'from when they cost again'),
    }),
    errors: ['APPLICATION_NOT_FOUND', 'PASS_NOT_FOUND'],
  },
})
