import type { OperationId, Tollbase } from '@tollbase/contract/contract'
import type { Input, Reply } from '@tollbase/contract/route'
import type { HttpReply } from '../http/reply.ts'
import type { Call, Service } from '../services/call.ts'

/**
 * The type of the function that serves an endpoint: its input and its reply come from the contract, and it gets those
 * parts of the service that it names.
 */
export type Operation<Id extends OperationId, Part extends keyof Service = never> = (
  call: Call<Part>,
  input: Input<Tollbase[Id]>,
) => Promise<Reply<Tollbase[Id]> | HttpReply>
