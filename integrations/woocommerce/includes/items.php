<?php
/**
 * The class that a product had when it was ordered.
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

/**
 * Each item of an order keeps it: a product can lose its class, or be deleted, while its order waits.
 */
final class Items {

	const META = '_countersign_class';

	/**
	 * Add the hooks.
	 */
	public static function register(): void {
		// WC_Order_Item::save(), by which every way of making an order stores its items.
		add_action( 'woocommerce_before_order_item_object_save', array( self::class, 'keep' ) );
		add_filter( 'woocommerce_hidden_order_itemmeta', array( self::class, 'hide' ) );
	}

	/**
	 * Keep the classes of the product with the item; what was kept before stays.
	 *
	 * @param \WC_Order_Item $item The item, before it is saved.
	 */
	public static function keep( $item ): void {
		$classes = $item instanceof \WC_Order_Item_Product ? self::classes_of( array( $item ) ) : array();
		if ( array() !== $classes ) {
			$item->update_meta_data( self::META, implode( ' ', $classes ) );
		}
	}

	/**
	 * The classes of items: those that they have kept, and those that their products have now.
	 *
	 * @param \WC_Order_Item[] $items The items.
	 * @return string[] Sorted, each once.
	 */
	public static function classes_of( array $items ): array {
		$products = array();
		$kept     = array();
		foreach ( $items as $item ) {
			$products[] = (int) $item->get_product_id();
			$kept[]     = (string) $item->get_meta( self::META );
		}
		$kept    = array_filter( explode( ' ', implode( ' ', $kept ) ) );
		$classes = array_values( array_unique( array_merge( Products::classes_of( $products ), $kept ) ) );
		sort( $classes );
		return $classes;
	}

	/**
	 * The page of an order shows the class in its box, and not with every item.
	 *
	 * @param string[] $hidden Names of what is kept with an item.
	 */
	public static function hide( $hidden ) {
		$hidden[] = self::META;
		return $hidden;
	}
}
