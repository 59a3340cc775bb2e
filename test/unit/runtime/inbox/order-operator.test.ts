import { describe, expect, test } from 'vitest';
import { beginsWith } from '../../../../lambdas/runtime/store/keys.ts';
