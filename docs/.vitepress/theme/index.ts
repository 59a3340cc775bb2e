import type { Theme } from 'vitepress';
import DefaultTheme from 'vitepress/theme';
import { defineAsyncComponent, h } from 'vue';
import VersionMenu from './version-menu.vue';
import './site.css';

export default {
  extends: DefaultTheme,
  Layout: () => h(DefaultTheme.Layout, null, { 'nav-bar-content-after': () => h(VersionMenu) }),
  enhanceApp: ({ app }) => {
    // Its recordings load with the page that shows them.
    app.component(
      'CrashStepper',
      defineAsyncComponent(() => import('./crash-stepper.vue')),
    );
  },
} satisfies Theme;
