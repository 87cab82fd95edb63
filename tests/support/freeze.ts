import { freezeInEarnest } from '../../packages/server/src/base/frozen.ts'

freezeInEarnest()
